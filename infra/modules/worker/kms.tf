data "google_project" "this" {
  project_id = var.project_id

  depends_on = [google_project_service.needed]
}

# The control plane grants the same for its own images; each works without the other.
resource "google_kms_crypto_key_iam_member" "images" {
  for_each = toset(var.kms_key == null ? [] : [var.kms_key])

  crypto_key_id = each.key
  role          = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
  member        = "serviceAccount:service-${data.google_project.this.number}@gcp-sa-artifactregistry.iam.gserviceaccount.com"
}
