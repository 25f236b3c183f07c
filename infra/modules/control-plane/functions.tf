locals {
  functions = {
    submit = merge(var.scaling.submit, { entry_point = "on_submit", dead_letters = true, retention = "604800s" })
    marker = merge(var.scaling.marker, { entry_point = "on_marker", dead_letters = true, retention = "604800s" })
    # A tick that came late tells nothing that the next one does not tell.
    tick = merge(var.scaling.tick, { entry_point = "on_tick", dead_letters = false, retention = "600s" })
  }
}

# A name made of the content: another zip is another object, and with it another deployment.
resource "google_storage_bucket_object" "bundle" {
  bucket = google_storage_bucket.code.name
  name   = "bundles/${filesha256(var.bundle)}.zip"
  source = var.bundle
}

# The functions' images. Without a repository of our own they would go to one that every function of the project shares.
resource "google_artifact_registry_repository" "functions" {
  project       = var.project_id
  location      = var.region
  repository_id = "${local.prefix}-functions"
  description   = "Images that Cloud Build makes of the functions."
  format        = "DOCKER"
  kms_key_name  = var.kms_key
  labels        = local.labels

  cleanup_policy_dry_run = false

  cleanup_policies {
    id     = "keep-some"
    action = "KEEP"

    most_recent_versions {
      keep_count = 10
    }
  }

  cleanup_policies {
    id     = "drop-old"
    action = "DELETE"

    condition {
      older_than = "2592000s"
    }
  }

  depends_on = [google_kms_crypto_key_iam_member.agent, google_project_service.needed]
}

resource "google_artifact_registry_repository_iam_member" "builder" {
  repository = google_artifact_registry_repository.functions.id
  role       = "roles/artifactregistry.writer"
  member     = google_service_account.builder.member
}

resource "google_project_iam_member" "builder_logs" {
  project = var.project_id
  role    = "roles/logging.logWriter"
  member  = google_service_account.builder.member
}

# Cloud Functions copies the source to a bucket of its own, from which the build takes it.
resource "google_project_iam_member" "builder_source" {
  project = var.project_id
  role    = "roles/storage.objectViewer"
  member  = google_service_account.builder.member

  condition {
    title      = "only the functions' source"
    expression = "resource.name.startsWith('projects/_/buckets/gcf-v2-sources-${data.google_project.this.number}-${var.region}')"
  }
}

resource "google_cloudfunctions2_function" "plane" {
  for_each = local.functions

  project      = var.project_id
  location     = var.region
  name         = "${local.prefix}-on-${each.key}"
  description  = "runtender: ${each.value.entry_point}"
  kms_key_name = var.kms_key
  labels       = local.labels

  build_config {
    runtime           = var.runtime
    entry_point       = each.value.entry_point
    docker_repository = google_artifact_registry_repository.functions.id
    service_account   = google_service_account.builder.id

    source {
      storage_source {
        bucket = google_storage_bucket.code.name
        object = google_storage_bucket_object.bundle.name
      }
    }
  }

  service_config {
    # Below the 600 s after which Pub/Sub sends the event again.
    timeout_seconds                  = 540
    available_cpu                    = "1"
    available_memory                 = each.value.memory
    max_instance_request_concurrency = each.value.concurrency
    min_instance_count               = each.value.min_instances
    max_instance_count               = each.value.max_instances
    ingress_settings                 = "ALLOW_INTERNAL_ONLY"
    service_account_email            = google_service_account.function[each.key].email
    environment_variables            = local.settings
    all_traffic_on_latest_revision   = true
    direct_vpc_egress                = var.vpc_egress == null ? null : "VPC_EGRESS_ALL_TRAFFIC"

    dynamic "direct_vpc_network_interface" {
      for_each = var.vpc_egress == null ? [] : [var.vpc_egress]

      content {
        network    = direct_vpc_network_interface.value.network
        subnetwork = direct_vpc_network_interface.value.subnetwork
      }
    }
  }

  # The build has no second try, and new code may announce what only the newest schema of the notifications knows.
  depends_on = [
    google_artifact_registry_repository_iam_member.builder,
    google_kms_crypto_key_iam_member.agent,
    google_project_iam_member.builder_logs,
    google_project_iam_member.builder_source,
    google_project_iam_member.plane,
    google_project_service.needed,
    google_pubsub_topic.plane,
  ]
}

resource "google_cloud_run_v2_service_iam_member" "plane" {
  for_each = {
    for pair in setproduct([for name, grant in local.grants : name if grant.place == "services"], keys(local.functions)) :
    "${pair[0]} ${pair[1]}" => { role = pair[0], function = pair[1] }
  }

  project  = var.project_id
  location = var.region
  # The service that carries a function has its name.
  name   = google_cloudfunctions2_function.plane[each.value.function].name
  role   = google_project_iam_custom_role.plane[each.value.role].id
  member = local.members[local.grants[each.value.role].identity]
}
