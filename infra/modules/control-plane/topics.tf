# The submit topic has no schema on purpose. Pub/Sub knows Avro and Protocol Buffers without imports; neither can say "any
# JSON object", which a run's config is, nor Avro that a key may be missing. It would also turn a message away with one line
# for a machine, where the plane acknowledges it, keeps its answer with every fault, and copies it to the dead letters.
# What the plane itself publishes for others to read has a schema.
resource "google_pubsub_schema" "notification" {
  project    = var.project_id
  name       = "${local.prefix}-notification"
  type       = "PROTOCOL_BUFFER"
  definition = file("${path.module}/notification.proto")

  depends_on = [google_project_service.needed]
}

resource "google_pubsub_topic" "plane" {
  for_each = local.topics

  project      = var.project_id
  name         = each.value
  kms_key_name = var.kms_key
  labels       = local.labels

  message_storage_policy {
    allowed_persistence_regions = [var.region]
  }

  dynamic "schema_settings" {
    for_each = each.key == "notify" ? [google_pubsub_schema.notification.id] : []

    content {
      schema   = schema_settings.value
      encoding = "JSON"
    }
  }

  depends_on = [google_kms_crypto_key_iam_member.agent, google_project_service.needed]
}

locals {
  topic_places = { for name in keys(local.topics) : "${name}_topic" => name }
}

resource "google_pubsub_topic_iam_member" "plane" {
  for_each = { for name, grant in local.grants : name => grant if contains(keys(local.topic_places), grant.place) }

  project = var.project_id
  topic   = google_pubsub_topic.plane[local.topic_places[each.value.place]].name
  role    = google_project_iam_custom_role.plane[each.key].id
  member  = local.members[each.value.identity]
}
