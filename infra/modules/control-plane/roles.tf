# Who may do what. The roles are generated from the calls that the code makes (permissions.json, by `make permissions`; the
# reviewer's page is infra/PERMISSIONS.md), each named IDENTITY_PLACE. Where a place is a resource of another file, its
# binding stands there, beside the resource.
locals {
  # Identity -> who that is.
  members = merge(
    { for name, account in google_service_account.function : name => account.member },
    {
      worker        = "serviceAccount:${var.worker.service_account_email}"
      pusher        = google_service_account.pusher.member
      scheduler     = "serviceAccount:service-${data.google_project.this.number}@gcp-sa-cloudscheduler.iam.gserviceaccount.com"
      pubsub_agent  = "serviceAccount:service-${data.google_project.this.number}@gcp-sa-pubsub.iam.gserviceaccount.com"
      storage_agent = data.google_storage_project_service_account.agent.member
      compute_agent = "serviceAccount:service-${data.google_project.this.number}@compute-system.iam.gserviceaccount.com"
    },
  )
  identities = ["submit", "marker", "tick", "worker", "pusher", "scheduler", "pubsub_agent", "storage_agent", "compute_agent"]

  roles = jsondecode(file("${path.module}/permissions.json"))
  identity_of = {
    for name in keys(local.roles) : name => one([for identity in local.identities : identity if startswith(name, "${identity}_")])
  }
  not_wanted = toset(concat(
    var.guest_self_delete ? [] : ["worker_machines"],
    var.kms_key == null ? ["compute_agent_disk_key"] : [],
    contains(keys(var.settings), "SF_GKE_CLUSTER") ? [] : [
      for name in keys(local.roles) : name if endswith(name, "_clusters") || endswith(name, "_pod_logs")
    ],
  ))
  grants = {
    for name, permissions in local.roles : name => {
      identity    = local.identity_of[name]
      place       = trimprefix(name, "${local.identity_of[name]}_")
      permissions = keys(permissions)
    } if !contains(local.not_wanted, name)
  }

  # Every place that some file of this module binds roles on; a role for any other stops the plan (see below).
  places = concat(
    keys(local.accounts),
    keys(local.bucket_places),
    keys(local.project_places),
    keys(local.topic_places),
    ["disk_key", "input_buckets", "repository", "secrets", "services", "subnets", "subscriptions"],
  )

  # Place -> condition under which a role holds on the project; "" for none. What the plane makes is called `sf-...`.
  project_places = {
    project  = ""
    machines = "resource.type == 'compute.googleapis.com/Instance' && resource.name.extract('/instances/{name}').startsWith('sf-')"
    disks    = "resource.type == 'compute.googleapis.com/Disk' && resource.name.extract('/disks/{name}').startsWith('sf-')"
    clusters = ""
    database = "resource.name == 'projects/${var.project_id}/databases/${local.database}'"
  }
}

resource "google_project_iam_custom_role" "plane" {
  for_each = local.grants

  project     = var.project_id
  role_id     = replace("${local.prefix}_${each.key}", "-", "_")
  title       = "runtender ${replace(each.key, "_", " ")}"
  description = "What '${each.value.identity}' of the plane '${var.plane_id}' may do on '${each.value.place}'; why: infra/PERMISSIONS.md."
  permissions = each.value.permissions

  depends_on = [google_project_service.needed]

  lifecycle {
    precondition {
      condition     = contains(local.places, each.value.place)
      error_message = "permissions.json has a role on '${each.value.place}', and this module binds none there: it is older than the code."
    }
  }
}

resource "google_project_iam_member" "plane" {
  for_each = { for name, grant in local.grants : name => grant if contains(keys(local.project_places), grant.place) }

  project = var.project_id
  role    = google_project_iam_custom_role.plane[each.key].id
  member  = local.members[each.value.identity]

  dynamic "condition" {
    for_each = local.project_places[each.value.place] == "" ? [] : [local.project_places[each.value.place]]

    content {
      title      = "only ${each.value.place}"
      expression = condition.value
    }
  }
}

resource "google_compute_subnetwork_iam_member" "plane" {
  for_each = {
    for pair in setproduct([for name, grant in local.grants : name if grant.place == "subnets"], keys(var.worker.subnetworks)) :
    "${pair[0]} ${pair[1]}" => { role = pair[0], region = pair[1] }
  }

  project    = var.project_id
  region     = each.value.region
  subnetwork = var.worker.subnetworks[each.value.region]
  role       = google_project_iam_custom_role.plane[each.value.role].id
  member     = local.members[local.grants[each.value.role].identity]
}

resource "google_artifact_registry_repository_iam_member" "plane" {
  for_each = { for name, grant in local.grants : name => grant if grant.place == "repository" }

  repository = var.worker.repository
  role       = google_project_iam_custom_role.plane[each.key].id
  member     = local.members[each.value.identity]
}

resource "google_secret_manager_secret_iam_member" "plane" {
  for_each = {
    for pair in setproduct([for name, grant in local.grants : name if grant.place == "secrets"], var.secrets) :
    "${pair[0]} ${pair[1]}" => { role = pair[0], secret = pair[1] }
  }

  secret_id = each.value.secret
  role      = google_project_iam_custom_role.plane[each.value.role].id
  member    = local.members[local.grants[each.value.role].identity]
}
