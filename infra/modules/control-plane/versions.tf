terraform {
  # 1.9: a variable's validation may look at other variables.
  required_version = ">= 1.9.0, < 2.0.0"

  required_providers {
    google = {
      source = "hashicorp/google"
      # 7.21: functions may send their traffic through a subnet without a connector.
      version = ">= 7.21.0, < 8.0.0"
    }
  }
}
