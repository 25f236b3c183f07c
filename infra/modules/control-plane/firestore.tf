# The plane's state. Which fields have an index, and which documents expire, is generated from the queries and writes in the
# code (firestore.json, by `make indexes`): everything else would be indexed by default, and paid for at each write.
locals {
  # The client asks for the project's default database.
  database  = "(default)"
  firestore = jsondecode(file("${path.module}/firestore.json"))

  indexed = merge([
    for collection, fields in local.firestore.indexes : {
      for field, orders in fields : "${collection}/${field}" => { collection = collection, field = field, orders = orders }
    }
  ]...)
}

resource "google_firestore_database" "state" {
  project                           = var.project_id
  name                              = local.database
  location_id                       = var.region
  type                              = "FIRESTORE_NATIVE"
  concurrency_mode                  = "OPTIMISTIC"
  delete_protection_state           = var.deletion_protection ? "DELETE_PROTECTION_ENABLED" : "DELETE_PROTECTION_DISABLED"
  deletion_policy                   = var.deletion_protection ? "ABANDON" : "DELETE"
  point_in_time_recovery_enablement = var.point_in_time_recovery ? "POINT_IN_TIME_RECOVERY_ENABLED" : "POINT_IN_TIME_RECOVERY_DISABLED"

  dynamic "cmek_config" {
    for_each = var.kms_key == null ? [] : [var.kms_key]

    content {
      kms_key_name = cmek_config.value
    }
  }

  depends_on = [google_kms_crypto_key_iam_member.agent, google_project_service.needed]
}

# No field of a collection is indexed ...
resource "google_firestore_field" "unindexed" {
  for_each = toset(local.firestore.collections)

  project    = var.project_id
  database   = google_firestore_database.state.name
  collection = each.key
  field      = "*"

  index_config {}
}

# ... but for those that a query of the code looks at.
resource "google_firestore_field" "indexed" {
  for_each = local.indexed

  project    = var.project_id
  database   = google_firestore_database.state.name
  collection = each.value.collection
  field      = each.value.field

  index_config {
    dynamic "indexes" {
      for_each = toset(each.value.orders)

      content {
        order       = indexes.value
        query_scope = "COLLECTION"
      }
    }
  }

  depends_on = [google_firestore_field.unindexed]
}

# The database removes these documents by itself, within a day of the moment in this field. It never does so for collections
# below a document, so what was spilled there carries its own.
resource "google_firestore_field" "expiry" {
  for_each = toset(local.firestore.expiring)

  project    = var.project_id
  database   = google_firestore_database.state.name
  collection = each.key
  field      = "expires_at"

  ttl_config {}
  index_config {}

  depends_on = [google_firestore_field.unindexed]
}

resource "google_firestore_index" "composite" {
  for_each = { for index in local.firestore.composite : join(" ", concat([index.collection], index.fields[*].field)) => index }

  project     = var.project_id
  database    = google_firestore_database.state.name
  collection  = each.value.collection
  query_scope = "COLLECTION"

  dynamic "fields" {
    for_each = each.value.fields

    content {
      field_path = fields.value.field
      order      = fields.value.order
    }
  }
}
