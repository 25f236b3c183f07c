# With a key of one's own, each service encrypts as its own agent, and none may use the key before it is told so.
locals {
  agents = var.kms_key == null ? {} : {
    artifacts = "serviceAccount:service-${data.google_project.this.number}@gcp-sa-artifactregistry.iam.gserviceaccount.com"
    database  = "serviceAccount:service-${data.google_project.this.number}@gcp-sa-firestore.iam.gserviceaccount.com"
    functions = "serviceAccount:service-${data.google_project.this.number}@gcf-admin-robot.iam.gserviceaccount.com"
    run       = "serviceAccount:service-${data.google_project.this.number}@serverless-robot-prod.iam.gserviceaccount.com"
    storage   = data.google_storage_project_service_account.agent.member
    topics    = "serviceAccount:service-${data.google_project.this.number}@gcp-sa-pubsub.iam.gserviceaccount.com"
  }
}

resource "google_kms_crypto_key_iam_member" "agent" {
  for_each = local.agents

  crypto_key_id = var.kms_key
  role          = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
  member        = each.value
}

resource "google_kms_crypto_key_iam_member" "disks" {
  for_each = { for name, grant in local.grants : name => grant if grant.place == "disk_key" }

  crypto_key_id = var.kms_key
  role          = google_project_iam_custom_role.plane[each.key].id
  member        = local.members[each.value.identity]
}
