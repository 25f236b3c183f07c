locals {
  prefix = var.plane_id == "main" ? "sf" : "sf-${var.plane_id}"
}

resource "google_project_service" "container" {
  project            = var.project_id
  service            = "container.googleapis.com"
  disable_on_destroy = false
}

# A cluster that stands. Its name does not begin with `sf-`: that is how jobs' own clusters are told.
resource "google_container_cluster" "standing" {
  project             = var.project_id
  name                = "runtender-${var.plane_id}"
  location            = var.region
  network             = var.network
  subnetwork          = var.subnetwork
  enable_autopilot    = true
  deletion_protection = var.deletion_protection
  resource_labels     = merge(var.labels, { managed-by = "terraform" })

  release_channel {
    channel = "REGULAR"
  }

  private_cluster_config {
    enable_private_nodes = true
  }

  # The functions call the Kubernetes API by its DNS name, which asks for a Google identity first. It has no address.
  control_plane_endpoints_config {
    dns_endpoint_config {
      allow_external_traffic = true
    }

    ip_endpoints_config {
      enabled = false
    }
  }

  # An empty block is how GKE is asked to choose the pods' and services' ranges.
  ip_allocation_policy {}

  cluster_autoscaling {
    auto_provisioning_defaults {
      service_account = google_service_account.nodes.email
      oauth_scopes    = ["https://www.googleapis.com/auth/cloud-platform"]
    }
  }

  dynamic "database_encryption" {
    for_each = var.kms_key == null ? [] : [var.kms_key]

    content {
      state    = "ENCRYPTED"
      key_name = database_encryption.value
    }
  }

  depends_on = [
    google_artifact_registry_repository_iam_member.nodes,
    google_kms_crypto_key_iam_member.secrets,
    google_project_iam_member.nodes,
    google_project_service.container,
  ]
}
