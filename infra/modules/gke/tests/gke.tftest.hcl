mock_provider "google" {}

variables {
  project_id        = "plane-tests"
  region            = "us-central1"
  network           = "projects/plane-tests/global/networks/n"
  subnetwork        = "projects/plane-tests/regions/us-central1/subnetworks/s"
  function_accounts = { submit = "submit@example.com", marker = "marker@example.com", tick = "tick@example.com" }
  worker            = { repository = "projects/p/locations/l/repositories/r", service_account_email = "worker@example.com" }
}

run "the_cluster_is_private" {
  assert {
    condition = (
      google_container_cluster.standing.private_cluster_config[0].enable_private_nodes
      && google_container_cluster.standing.control_plane_endpoints_config[0].dns_endpoint_config[0].allow_external_traffic
      && !google_container_cluster.standing.control_plane_endpoints_config[0].ip_endpoints_config[0].enabled
    )
    error_message = "Private nodes, and a control plane that is reached by its name only."
  }

  assert {
    condition     = !startswith(output.cluster, "sf-") && !contains(keys(google_container_cluster.standing.resource_labels), "sf-kind")
    error_message = "It must not be taken for a job's own cluster, nor its nodes for workers."
  }

  assert {
    condition     = google_service_account_iam_member.pods.member == "serviceAccount:plane-tests.svc.id.goog[default/runtender-worker]"
    error_message = "Pods of that account are the worker."
  }

  assert {
    condition     = strcontains(output.rbac_manifest, "name: tick@example.com") && !strcontains(output.rbac_manifest, "$${")
    error_message = "The manifest names the functions."
  }
}

run "labels_that_nodes_must_not_have" {
  command = plan

  variables {
    labels = { sf-kind = "vm" }
  }

  expect_failures = [var.labels]
}
