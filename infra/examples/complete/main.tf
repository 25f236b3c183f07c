# Much of what there is to choose: a key of one's own, a standing cluster, alerts, a budget, and functions whose
# traffic goes through the network.
provider "google" {
  project = var.project_id
  region  = var.region

  # The API of budgets wants to know who pays for the call itself.
  billing_project       = var.project_id
  user_project_override = true
}

module "worker" {
  source     = "../../modules/worker"
  project_id = var.project_id
  region     = var.region
  kms_key    = var.kms_key
  labels     = var.labels
  nat        = true

  # One region: a disk takes a key of its own region only. Without a key of one's own, each further region is a line.
  subnets = { (var.region) = "10.64.0.0/18" }
}

module "control_plane" {
  source                = "../../modules/control-plane"
  project_id            = var.project_id
  region                = var.region
  bundle                = var.bundle
  worker                = module.worker
  image                 = "${module.worker.registry}/${var.image}"
  input_buckets         = var.input_buckets
  secrets               = var.secrets
  kms_key               = var.kms_key
  labels                = var.labels
  guest_self_delete     = false
  alert_emails          = var.alert_emails
  notification_channels = var.notification_channels
  budget                = var.budget

  point_in_time_recovery = true

  alerts    = { cluster_age_hours = 50 }
  retention = { logs_days = 30, code_days = 400 }
  scaling   = { submit = { min_instances = 1 } }

  vpc_egress = {
    network    = module.worker.network
    subnetwork = module.worker.subnetworks[var.region]
  }

  settings = merge(module.gke.settings, {
    SF_API_BUDGET     = "500"
    SF_IMAGE_ALLOW    = "${module.worker.registry}/"
    SF_REQUIRE_DIGEST = "true"
    SF_LIMITS         = jsonencode([{ jobs = 200 }, { label = { team = "demand" }, gpus = 8 }])
  })
}

module "gke" {
  source            = "../../modules/gke"
  project_id        = var.project_id
  region            = var.region
  network           = module.worker.network
  subnetwork        = module.worker.subnetworks[var.region]
  worker            = module.worker
  function_accounts = module.control_plane.function_accounts
  kms_key           = var.kms_key
  labels            = var.labels
}
