locals {
  prefix  = var.plane_id == "main" ? "sf" : "sf-${var.plane_id}"
  labels  = merge(var.labels, { managed-by = "terraform", sf-plane = var.plane_id })
  subnets = length(var.subnets) == 0 ? { (var.region) = "10.64.0.0/20" } : var.subnets
}
