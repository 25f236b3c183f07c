# Each alert, what it means and what to do; infra/README.md has the same with more words. PromQL, because such a policy may be
# made before its metric has a first value, and because `absent` sees what never came.
locals {
  waiting = "pubsub_googleapis_com:subscription_oldest_unacked_message_age{subscription_id=~\"${local.topics.submit}-push|${local.topics.marker}-push\"}"
  created = "round(sum by (cluster, location) (increase(${local.promql.clusters_created}{monitored_resource=\"gke_cluster\"}[30d] offset ${var.alerts.cluster_age_hours}h)))"
  deleted = "round(sum by (cluster, location) (increase(${local.promql.clusters_deleted}{monitored_resource=\"gke_cluster\"}[30d])))"

  api_budget = tonumber(lookup(var.settings, "SF_API_BUDGET", "1000"))

  alerts = {
    dead_letters = {
      title    = "dead letters wait"
      severity = "ERROR"
      query    = "sum(pubsub_googleapis_com:subscription_num_undelivered_messages{subscription_id=\"${local.topics.dead_letter}-pull\"}) > 0"
      duration = "0s"
      todo     = "A message was rejected, or no function took it in ten tries. `runtender dead-letters list` says why; mend it, then `redrive` or `discard`."
    }
    oldest_message = {
      title    = "messages are not taken"
      severity = "ERROR"
      query    = "max by (subscription_id) (${local.waiting}) > ${var.alerts.oldest_message_minutes * 60}"
      duration = "300s"
      todo     = "See what `on_submit` and `on_marker` log. 403 on each push: the pusher may not call the function. 429: raise max_instances."
    }
    ticks_missing = {
      title    = "no ticks"
      severity = "CRITICAL"
      query    = "absent_over_time(${local.promql.ticks}{monitored_resource=\"cloud_run_revision\"}[10m]) or sum(increase(${local.promql.ticks}{monitored_resource=\"cloud_run_revision\"}[10m])) < 1"
      duration = "300s"
      todo     = "Nothing watches over the runs. See whether the timer is paused or refused (Cloud Scheduler), then what `on_tick` logs."
    }
    cleanup_stuck = {
      title    = "machines or Jobs cannot be removed"
      severity = "ERROR"
      query    = "sum(increase(${local.promql.stuck}{monitored_resource=\"cloud_run_revision\"}[30m])) >= 1 or sum(increase(${local.promql.refused_deletes}{monitored_resource=\"gce_instance\"}[30m])) >= 3"
      duration = "0s"
      todo     = "`runtender doctor` names the jobs and the reason: most often deletion protection, a lien or a missing permission. The plane goes on trying."
    }
    orphans = {
      title    = "machines without a job"
      severity = "WARNING"
      query    = "sum(increase(${local.promql.orphans}{monitored_resource=\"cloud_run_revision\"}[1h])) >= 1"
      duration = "0s"
      todo     = "Look at the log line: `orphan deleted` has mended itself, and should be reported. One that is left alone has no job document: somebody else's label, or a lost database. Delete it by hand."
    }
    api_budget = {
      title    = "the budget of creates is used up"
      severity = "WARNING"
      query    = "sum(increase(${local.promql.creates}{monitored_resource=\"cloud_run_revision\"}[1m])) >= ${floor(local.api_budget * 0.9)}"
      duration = "300s"
      todo     = "Jobs wait for their turn; nothing is lost. Raise SF_API_BUDGET if Compute Engine's quota has room, or submit less at once."
    }
    cluster_age = {
      title    = "a job's cluster is old"
      severity = "ERROR"
      query    = "${local.created} > (${local.deleted} or ${local.created} * 0)"
      duration = "0s"
      todo     = "The labels name the cluster. If its job is at rest (`runtender describe RUN`), delete it: gcloud container clusters delete."
    }
    faults = {
      title    = "the functions log errors"
      severity = "ERROR"
      query    = "sum(increase(${local.promql.faults}{monitored_resource=\"cloud_run_revision\"}[15m])) >= 5"
      duration = "0s"
      todo     = "Read them: a bug raises, and its message comes again until it is a dead letter. Roll back if they began with a deployment."
    }
  }
}

resource "google_monitoring_notification_channel" "email" {
  for_each = toset(var.alert_emails)

  project      = var.project_id
  display_name = "runtender: ${each.key}"
  type         = "email"
  labels       = { email_address = each.key }

  depends_on = [google_project_service.needed]
}

resource "google_monitoring_alert_policy" "plane" {
  for_each = local.alerts

  project      = var.project_id
  display_name = "runtender ${var.plane_id}: ${each.value.title}"
  combiner     = "OR"
  severity     = each.value.severity
  user_labels  = local.labels

  notification_channels = concat(
    var.notification_channels,
    [for channel in google_monitoring_notification_channel.email : channel.id],
  )

  conditions {
    display_name = each.value.title

    condition_prometheus_query_language {
      query                     = each.value.query
      duration                  = each.value.duration
      evaluation_interval       = "60s"
      disable_metric_validation = true
    }
  }

  documentation {
    mime_type = "text/markdown"
    content   = each.value.todo
  }

  alert_strategy {
    auto_close = "86400s"
  }

  depends_on = [google_logging_metric.clusters, google_logging_metric.counts]
}
