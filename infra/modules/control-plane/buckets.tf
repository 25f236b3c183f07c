# Code, configs and logs. Its own lifecycle is cautious: a nightly run may name code that was staged a year ago.
resource "google_storage_bucket" "code" {
  project                     = var.project_id
  name                        = local.code_bucket
  location                    = var.region
  labels                      = local.labels
  force_destroy               = !var.deletion_protection
  public_access_prevention    = "enforced"
  uniform_bucket_level_access = true

  versioning {
    enabled = true
  }

  dynamic "encryption" {
    for_each = var.kms_key == null ? [] : [var.kms_key]

    content {
      default_kms_key_name = encryption.value
    }
  }

  lifecycle_rule {
    action {
      type = "Delete"
    }
    condition {
      age            = var.retention.logs_days
      matches_prefix = ["runs/logs/"]
    }
  }

  # Old code is seldom read again, and has to be there when it is.
  lifecycle_rule {
    action {
      type          = "SetStorageClass"
      storage_class = "NEARLINE"
    }
    condition {
      age                   = 90
      matches_storage_class = ["STANDARD"]
      matches_prefix        = ["runs/"]
      matches_suffix        = [".zip"]
    }
  }

  lifecycle_rule {
    action {
      type = "Delete"
    }
    condition {
      days_since_noncurrent_time = 30
    }
  }

  dynamic "lifecycle_rule" {
    for_each = var.retention.code_days == null ? [] : [var.retention.code_days]

    content {
      action {
        type = "Delete"
      }
      condition {
        age            = lifecycle_rule.value
        matches_prefix = ["runs/"]
        matches_suffix = [".zip", ".json"]
      }
    }
  }

  depends_on = [google_kms_crypto_key_iam_member.agent, google_project_service.needed]
}

# Where a walk for capacity may go: to the regions that have a subnet for workers.
resource "google_storage_bucket_object" "places" {
  bucket       = google_storage_bucket.code.name
  name         = "places.json"
  content_type = "application/json"
  content      = jsonencode({ regions = { for region, subnet in var.worker.subnetworks : region => { subnetwork_uri = subnet } } })
}

# Markers, and nothing else: whoever may write here may end a run.
resource "google_storage_bucket" "status" {
  project                     = var.project_id
  name                        = local.status_bucket
  location                    = var.region
  labels                      = local.labels
  force_destroy               = !var.deletion_protection
  public_access_prevention    = "enforced"
  uniform_bucket_level_access = true

  dynamic "encryption" {
    for_each = var.kms_key == null ? [] : [var.kms_key]

    content {
      default_kms_key_name = encryption.value
    }
  }

  lifecycle_rule {
    action {
      type = "Delete"
    }
    condition {
      age = var.retention.markers_days
    }
  }

  depends_on = [google_kms_crypto_key_iam_member.agent, google_project_service.needed]
}

# A notification instead of an event trigger: it can be filtered by prefix, and its bucket may lie anywhere.
resource "google_storage_notification" "markers" {
  bucket             = google_storage_bucket.status.name
  topic              = google_pubsub_topic.plane["marker"].id
  payload_format     = "JSON_API_V1"
  event_types        = ["OBJECT_FINALIZE"]
  object_name_prefix = "runs/status/"

  # Cloud Storage tries its agent's permission to publish when the notification is made.
  depends_on = [google_pubsub_topic_iam_member.plane]
}

locals {
  # Place -> bucket, and the condition under which a role holds there; "" for none. A list is a matter of the whole bucket.
  bucket_places = {
    status_bucket  = { bucket = google_storage_bucket.status.name, condition = "" }
    markers        = { bucket = google_storage_bucket.status.name, condition = "resource.name.startsWith('projects/_/buckets/${local.status_bucket}/objects/runs/status/')" }
    marker_copies  = { bucket = google_storage_bucket.status.name, condition = "resource.name.startsWith('projects/_/buckets/${local.status_bucket}/objects/runs/gce-status/')" }
    code_bucket    = { bucket = google_storage_bucket.code.name, condition = "" }
    configs        = { bucket = google_storage_bucket.code.name, condition = local.only_configs }
    logs           = { bucket = google_storage_bucket.code.name, condition = "resource.name.startsWith('projects/_/buckets/${local.code_bucket}/objects/runs/logs/')" }
    pod_logs       = { bucket = google_storage_bucket.code.name, condition = "resource.name.startsWith('projects/_/buckets/${local.code_bucket}/objects/runs/logs/') && resource.name.endsWith('/pods.log')" }
    results_bucket = { bucket = local.results_bucket, condition = "" }
    results        = { bucket = local.results_bucket, condition = "resource.name.startsWith('projects/_/buckets/${local.results_bucket}/objects/${local.results_folder}/')" }
  }

  only_configs = join(" && ", concat(
    ["resource.name.startsWith('projects/_/buckets/${local.code_bucket}/objects/runs/')"],
    [for folder in ["status", "gce-status", "logs"] : "!resource.name.startsWith('projects/_/buckets/${local.code_bucket}/objects/runs/${folder}/')"],
  ))
}

resource "google_storage_bucket_iam_member" "plane" {
  for_each = { for name, grant in local.grants : name => grant if contains(keys(local.bucket_places), grant.place) }

  bucket = local.bucket_places[each.value.place].bucket
  role   = google_project_iam_custom_role.plane[each.key].id
  member = local.members[each.value.identity]

  dynamic "condition" {
    for_each = local.bucket_places[each.value.place].condition == "" ? [] : [local.bucket_places[each.value.place].condition]

    content {
      title      = "only ${replace(each.value.place, "_", " ")}"
      expression = condition.value
    }
  }

  # The bucket of results may be the code bucket, which is known here by its name only.
  depends_on = [google_storage_bucket.code]
}

resource "google_storage_bucket_iam_member" "inputs" {
  for_each = {
    for pair in setproduct([for name, grant in local.grants : name if grant.place == "input_buckets"], var.input_buckets) :
    "${pair[0]} ${pair[1]}" => { role = pair[0], bucket = pair[1] }
  }

  bucket = each.value.bucket
  role   = google_project_iam_custom_role.plane[each.value.role].id
  member = local.members[local.grants[each.value.role].identity]
}
