# Our own push subscriptions instead of the functions' event triggers: those acknowledge after 10 s, which cannot be set, and
# have no dead letters.
resource "google_pubsub_subscription" "push" {
  for_each = local.functions

  project = var.project_id
  name    = "${local.topics[each.key]}-push"
  topic   = google_pubsub_topic.plane[each.key].id
  labels  = local.labels

  # More than the function's time-out, so that a message is not sent again to one that is still at it.
  ack_deadline_seconds       = 600
  message_retention_duration = each.value.retention

  expiration_policy {
    ttl = ""
  }

  push_config {
    # The address at run.app: only there do the plane's functions take internal traffic.
    push_endpoint = google_cloudfunctions2_function.plane[each.key].service_config[0].uri

    oidc_token {
      service_account_email = google_service_account.pusher.email
      audience              = google_cloudfunctions2_function.plane[each.key].service_config[0].uri
    }
  }

  retry_policy {
    minimum_backoff = "10s"
    maximum_backoff = "600s"
  }

  dynamic "dead_letter_policy" {
    for_each = each.value.dead_letters ? [google_pubsub_topic.plane["dead_letter"].id] : []

    content {
      dead_letter_topic     = dead_letter_policy.value
      max_delivery_attempts = 10
    }
  }

  # A message pushed before the pusher may call the function is refused, and counts as an attempt.
  depends_on = [google_cloud_run_v2_service_iam_member.plane, google_service_account_iam_member.plane]
}

# Putting a dead letter aside takes it off the subscription: Pub/Sub's agent needs to be its subscriber, too.
resource "google_pubsub_subscription_iam_member" "plane" {
  for_each = {
    for pair in setproduct(
      [for name, grant in local.grants : name if grant.place == "subscriptions"],
      [for name, function in local.functions : name if function.dead_letters],
    ) : "${pair[0]} ${pair[1]}" => { role = pair[0], function = pair[1] }
  }

  project      = var.project_id
  subscription = google_pubsub_subscription.push[each.value.function].name
  role         = google_project_iam_custom_role.plane[each.value.role].id
  member       = local.members[local.grants[each.value.role].identity]
}

# A dead-letter topic without a subscription loses what is sent to it. `runtender dead-letters` reads this one.
resource "google_pubsub_subscription" "dead_letters" {
  project = var.project_id
  name    = "${local.topics.dead_letter}-pull"
  topic   = google_pubsub_topic.plane["dead_letter"].id
  labels  = local.labels

  ack_deadline_seconds       = 60
  message_retention_duration = "2678400s" # 31 days, the most there is

  expiration_policy {
    ttl = ""
  }
}
