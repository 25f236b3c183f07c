# One account per function, one that Pub/Sub shows to them, and one that builds them. None has a key.
resource "google_service_account" "function" {
  for_each = local.functions

  project      = var.project_id
  account_id   = "${local.prefix}-${each.key}"
  display_name = "runtender ${each.value.entry_point}"

  depends_on = [google_project_service.needed]
}

resource "google_service_account" "pusher" {
  project      = var.project_id
  account_id   = "${local.prefix}-pusher"
  display_name = "runtender push subscriptions"

  depends_on = [google_project_service.needed]
}

resource "google_service_account" "builder" {
  project      = var.project_id
  account_id   = "${local.prefix}-builder"
  display_name = "runtender build of the functions"

  depends_on = [google_project_service.needed]
}

locals {
  # The resources that the two places below stand for, by the places' names in permissions.json.
  accounts = {
    pusher_account = google_service_account.pusher.name
    worker_account = "projects/${var.project_id}/serviceAccounts/${var.worker.service_account_email}"
  }
}

# Acting as the worker, or as the pusher: granted on that one account, never on the project.
resource "google_service_account_iam_member" "plane" {
  for_each = { for name, grant in local.grants : name => grant if contains(keys(local.accounts), grant.place) }

  service_account_id = local.accounts[each.value.place]
  role               = google_project_iam_custom_role.plane[each.key].id
  member             = local.members[each.value.identity]

  # Pub/Sub's own agent comes into being with the first topic.
  depends_on = [google_pubsub_topic.plane]
}
