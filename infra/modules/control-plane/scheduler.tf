# The only thing that happens at rest: a message each minute. A tick that was lost is not worth repeating.
resource "google_cloud_scheduler_job" "tick" {
  project     = var.project_id
  region      = var.region
  name        = "${local.prefix}-tick"
  description = "Wakes the plane's watchdog each minute."
  schedule    = "* * * * *"
  time_zone   = "Etc/UTC"
  paused      = var.ticks_paused

  pubsub_target {
    topic_name = google_pubsub_topic.plane["tick"].id
    data       = base64encode("tick")
  }

  retry_config {
    retry_count = 0
  }
}
