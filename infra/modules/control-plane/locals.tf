locals {
  prefix = var.plane_id == "main" ? "sf" : "sf-${var.plane_id}"
  labels = merge(var.labels, { managed-by = "terraform", sf-plane = var.plane_id })

  topics = { for name in ["submit", "tick", "marker", "dead-letter", "notify"] : replace(name, "-", "_") => "${local.prefix}-${name}" }

  code_bucket    = "${var.project_id}-${local.prefix}-code"
  status_bucket  = "${var.project_id}-${local.prefix}-status"
  cells_prefix   = coalesce(var.cells_prefix, "gs://${local.code_bucket}/artifacts")
  results_bucket = split("/", local.cells_prefix)[2]
  results_folder = trimprefix(local.cells_prefix, "gs://${local.results_bucket}/")

  # Every setting that follows from what this module makes. What is not here has its default from settings.py.
  settings = merge(var.settings, local.chosen, {
    SF_CELLS_PREFIX      = local.cells_prefix
    SF_CODE_BUCKET       = google_storage_bucket.code.name
    SF_COMPUTE_FALLBACK  = "gs://${google_storage_bucket.code.name}/${google_storage_bucket_object.places.name}"
    SF_COMPUTE_SA        = var.worker.service_account_email
    SF_DEAD_LETTER_TOPIC = local.topics.dead_letter
    SF_GUEST_SELF_DELETE = tostring(var.guest_self_delete)
    SF_MARKER_TOPIC      = local.topics.marker
    SF_NOTIFY_TOPIC      = local.topics.notify
    SF_PLANE_ID          = var.plane_id
    SF_PROJECT_ID        = var.project_id
    SF_REGION            = var.region
    SF_STATUS_BUCKET     = google_storage_bucket.status.name
    SF_SUBMIT_TOPIC      = local.topics.submit
    SF_SUBNETWORK_URI    = var.worker.subnetworks[var.region]
    SF_TICK_TOPIC        = local.topics.tick
  })

  # An environment variable is not empty, but absent.
  chosen = merge(
    var.image == "" ? {} : { SF_CONTAINER_IMAGE = var.image },
    var.kms_key == null ? {} : { SF_KMS_KEY = var.kms_key },
  )
}
