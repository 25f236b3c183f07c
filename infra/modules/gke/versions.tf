terraform {
  # As the control plane, which it is used with.
  required_version = ">= 1.9.0, < 2.0.0"

  required_providers {
    google = {
      source  = "hashicorp/google"
      version = ">= 7.21.0, < 8.0.0"
    }
  }
}
