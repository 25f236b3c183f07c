resource "google_artifact_registry_repository" "images" {
  project       = var.project_id
  location      = var.region
  repository_id = "${local.prefix}-workers"
  description   = "Images that workers run."
  format        = "DOCKER"
  kms_key_name  = var.kms_key
  labels        = local.labels

  # A tag that moves would let two attempts of one run differ.
  docker_config {
    immutable_tags = true
  }

  depends_on = [google_kms_crypto_key_iam_member.images, google_project_service.needed]
}
