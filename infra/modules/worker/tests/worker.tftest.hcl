mock_provider "google" {}

variables {
  project_id = "plane-tests"
  region     = "us-central1"
}

run "workers_are_out_of_reach" {
  assert {
    condition     = one(google_compute_firewall.deny_ingress.deny).protocol == "all" && one(google_compute_firewall.deny_ingress.source_ranges) == "0.0.0.0/0"
    error_message = "Nobody connects to a worker."
  }

  assert {
    condition     = length(google_compute_router_nat.workers) == 0 && google_compute_subnetwork.workers["us-central1"].private_ip_google_access
    error_message = "Workers reach Google's APIs, and nothing else unless it is asked for."
  }
}

run "several_regions_with_a_way_out" {
  variables {
    nat     = true
    subnets = { us-central1 = "10.1.0.0/20", us-east1 = "10.2.0.0/20" }
  }

  assert {
    condition     = sort(keys(google_compute_router_nat.workers)) == tolist(["us-central1", "us-east1"]) && sort(keys(output.subnetworks)) == tolist(["us-central1", "us-east1"])
    error_message = "Each region has a subnet and a way out."
  }
}

run "a_range_that_is_none" {
  command = plan

  variables {
    subnets = { us-central1 = "10.0.0.0" }
  }

  expect_failures = [var.subnets]
}
