module "worker" {
  source     = "../../modules/worker"
  project_id = var.project_id
  region     = var.region
}

module "control_plane" {
  source     = "../../modules/control-plane"
  project_id = var.project_id
  region     = var.region
  bundle     = var.bundle
  worker     = module.worker
}
