resource "google_monitoring_dashboard" "plane" {
  project = var.project_id
  dashboard_json = templatefile("${path.module}/dashboard.json.tftpl", {
    metrics  = local.promql
    plane_id = var.plane_id
    prefix   = local.prefix
    topics   = local.topics
  })

  depends_on = [google_project_service.needed]
}
