# Nodes pull images and ship logs and metrics; what pods may do is the worker's account, not this one.
resource "google_service_account" "nodes" {
  project      = var.project_id
  account_id   = "${local.prefix}-nodes"
  display_name = "runtender nodes of the standing cluster"
}

resource "google_project_iam_member" "nodes" {
  project = var.project_id
  role    = "roles/container.defaultNodeServiceAccount"
  member  = google_service_account.nodes.member
}

resource "google_artifact_registry_repository_iam_member" "nodes" {
  repository = var.worker.repository
  role       = "roles/artifactregistry.reader"
  member     = google_service_account.nodes.member
}
