locals {
  services = [
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
  ]
  services_chosen = concat(
    var.budget == null ? [] : ["billingbudgets.googleapis.com"],
    var.kms_key == null ? [] : ["cloudkms.googleapis.com"],
    length(var.secrets) == 0 ? [] : ["secretmanager.googleapis.com"],
  )
}

resource "google_project_service" "needed" {
  for_each = toset(concat(local.services, local.services_chosen))

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
