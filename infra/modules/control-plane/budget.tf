resource "google_billing_budget" "project" {
  for_each = var.budget == null ? {} : { project = var.budget }

  billing_account = each.value.billing_account
  display_name    = "runtender ${var.project_id}"

  amount {
    specified_amount {
      units = tostring(floor(each.value.amount))
    }
  }

  budget_filter {
    projects = ["projects/${data.google_project.this.number}"]
  }

  dynamic "threshold_rules" {
    for_each = [0.5, 0.9, 1.0]

    content {
      threshold_percent = threshold_rules.value
    }
  }

  threshold_rules {
    threshold_percent = 1.0
    spend_basis       = "FORECASTED_SPEND"
  }

  all_updates_rule {
    monitoring_notification_channels = concat(
      var.notification_channels,
      [for channel in google_monitoring_notification_channel.email : channel.id],
    )
    disable_default_iam_recipients = false
  }
}
