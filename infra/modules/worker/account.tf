# What workers run as, and with them the user's code. It has no rights here: those that it needs are bound by the control
# plane's module, on the buckets and folders that it knows.
resource "google_service_account" "worker" {
  project      = var.project_id
  account_id   = "${local.prefix}-worker"
  display_name = "runtender workers"

  depends_on = [google_project_service.needed]
}
