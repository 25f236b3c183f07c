resource "google_project_service" "needed" {
  for_each = toset(["artifactregistry.googleapis.com", "compute.googleapis.com", "iam.googleapis.com"])

  project            = var.project_id
  service            = each.key
  disable_on_destroy = false
}
