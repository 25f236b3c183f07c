resource "google_project_service" "needed" {
  for_each = toset([
    "artifactregistry.googleapis.com",
    "cloudbuild.googleapis.com",
    "cloudfunctions.googleapis.com",
    "cloudscheduler.googleapis.com",
    "compute.googleapis.com",
    "firestore.googleapis.com",
    "iam.googleapis.com",
    "iamcredentials.googleapis.com",
    "logging.googleapis.com",
    "monitoring.googleapis.com",
    "pubsub.googleapis.com",
    "run.googleapis.com",
    "serviceusage.googleapis.com",
    "storage.googleapis.com",
  ])

  project = var.project_id
  service = each.key
  # Others in the project may use it too.
  disable_on_destroy = false
}

data "google_project" "this" {
  project_id = var.project_id

  depends_on = [google_project_service.needed]
}

# Asking for the agent's name is what makes Cloud Storage create it.
data "google_storage_project_service_account" "agent" {
  project = var.project_id

  depends_on = [google_project_service.needed]
}
