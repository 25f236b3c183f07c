resource "google_compute_network" "workers" {
  project                 = var.project_id
  name                    = "${local.prefix}-workers"
  description             = "Network of runtender's workers, which have no external addresses."
  auto_create_subnetworks = false
  routing_mode            = "REGIONAL"

  depends_on = [google_project_service.needed]
}

resource "google_compute_subnetwork" "workers" {
  for_each = local.subnets

  project       = var.project_id
  region        = each.key
  name          = "${local.prefix}-workers"
  network       = google_compute_network.workers.id
  ip_cidr_range = each.value
  # Without external addresses, this is the way to Cloud Storage and Artifact Registry.
  private_ip_google_access = true

  log_config {
    aggregation_interval = "INTERVAL_10_MIN"
    flow_sampling        = 0.1
    metadata             = "INCLUDE_ALL_METADATA"
  }
}

resource "google_compute_router" "workers" {
  for_each = var.nat ? local.subnets : {}

  project = var.project_id
  region  = each.key
  name    = "${local.prefix}-workers"
  network = google_compute_network.workers.id
}

resource "google_compute_router_nat" "workers" {
  for_each = google_compute_router.workers

  project                            = var.project_id
  region                             = each.key
  name                               = "${local.prefix}-workers"
  router                             = each.value.name
  nat_ip_allocate_option             = "AUTO_ONLY"
  source_subnetwork_ip_ranges_to_nat = "LIST_OF_SUBNETWORKS"

  subnetwork {
    name                    = google_compute_subnetwork.workers[each.key].id
    source_ip_ranges_to_nat = ["ALL_IP_RANGES"]
  }

  log_config {
    enable = true
    filter = "ERRORS_ONLY"
  }
}

# The network's own last rule says the same, but logs nothing.
resource "google_compute_firewall" "deny_ingress" {
  project            = var.project_id
  name               = "${local.prefix}-workers-deny-ingress"
  description        = "Nobody connects to a worker, other workers included."
  network            = google_compute_network.workers.id
  direction          = "INGRESS"
  priority           = 65000
  source_ranges      = ["0.0.0.0/0"]
  destination_ranges = values(local.subnets)

  deny {
    protocol = "all"
  }

  log_config {
    metadata = "INCLUDE_ALL_METADATA"
  }
}
