# What the module makes of its variables, with a provider that makes nothing: `terraform test`, no project needed.
mock_provider "google" {
  mock_data "google_project" {
    defaults = { number = "123456789012" }
  }
}

variables {
  project_id = "plane-tests"
  region     = "us-central1"
  # Any file will do: it is only hashed.
  bundle = "./permissions.json"
  worker = {
    repository            = "projects/plane-tests/locations/us-central1/repositories/sf-workers"
    service_account_email = "sf-worker@plane-tests.iam.gserviceaccount.com"
    subnetworks = {
      us-central1 = "projects/plane-tests/regions/us-central1/subnetworks/sf-workers"
      us-east1    = "projects/plane-tests/regions/us-east1/subnetworks/sf-workers"
    }
  }
}

run "a_plane_as_it_comes" {
  # Events reach the functions by push.

  assert {
    condition     = alltrue([for subscription in google_pubsub_subscription.push : subscription.ack_deadline_seconds > google_cloudfunctions2_function.plane["tick"].service_config[0].timeout_seconds])
    error_message = "A message must not be sent again to a function that is still at it."
  }

  assert {
    condition = alltrue([
      for name, subscription in google_pubsub_subscription.push :
      subscription.push_config[0].push_endpoint == google_cloudfunctions2_function.plane[name].service_config[0].uri
      && subscription.push_config[0].oidc_token[0].audience == subscription.push_config[0].push_endpoint
      && subscription.push_config[0].oidc_token[0].service_account_email == google_service_account.pusher.email
    ])
    error_message = "Each subscription pushes to its own function, as the pusher."
  }

  assert {
    condition = alltrue([
      for name in ["submit", "marker"] :
      google_pubsub_subscription.push[name].dead_letter_policy[0].max_delivery_attempts == 10
      && google_pubsub_subscription.push[name].message_retention_duration == "604800s"
    ])
    error_message = "Submits and markers end as dead letters after ten attempts, and are kept for a week."
  }

  assert {
    condition     = length(google_pubsub_subscription.push["tick"].dead_letter_policy) == 0 && google_pubsub_subscription.push["tick"].message_retention_duration == "600s"
    error_message = "Ticks are dropped: they have no dead letters and ten minutes."
  }

  assert {
    condition     = google_pubsub_subscription.dead_letters.name == "${output.topics.dead_letter}-pull"
    error_message = "`runtender dead-letters` reads this name."
  }

  assert {
    condition     = alltrue([for subscription in concat(values(google_pubsub_subscription.push), [google_pubsub_subscription.dead_letters]) : subscription.expiration_policy[0].ttl == ""])
    error_message = "A subscription that nothing used for a month would be deleted."
  }

  assert {
    condition     = sort(keys(google_pubsub_subscription_iam_member.plane)) == tolist(["pubsub_agent_subscriptions marker", "pubsub_agent_subscriptions submit"])
    error_message = "Pub/Sub's agent takes dead letters off the two subscriptions that have them."
  }

  assert {
    condition     = google_storage_notification.markers.object_name_prefix == "runs/status/" && google_storage_notification.markers.event_types == toset(["OBJECT_FINALIZE"])
    error_message = "Only finished markers wake a function."
  }

  # The functions are closed.

  assert {
    condition     = alltrue([for function in google_cloudfunctions2_function.plane : function.service_config[0].ingress_settings == "ALLOW_INTERNAL_ONLY"])
    error_message = "Nobody outside reaches a function."
  }

  assert {
    condition     = alltrue([for function in google_cloudfunctions2_function.plane : length(function.event_trigger) == 0])
    error_message = "A trigger would acknowledge after ten seconds."
  }

  assert {
    condition     = length(distinct([for function in google_cloudfunctions2_function.plane : function.service_config[0].service_account_email])) == 3
    error_message = "Each function has an account of its own."
  }

  assert {
    condition     = sort(keys(google_cloud_run_v2_service_iam_member.plane)) == tolist(["pusher_services marker", "pusher_services submit", "pusher_services tick"])
    error_message = "The pusher, and nobody else, may call them."
  }

  assert {
    condition     = google_storage_bucket_object.bundle.name == "bundles/${filesha256("./permissions.json")}.zip"
    error_message = "Another content must be another object."
  }

  # Rights are bound where they are needed.

  assert {
    condition = (
      length(google_project_iam_custom_role.plane)
      == length(setunion(
        keys(google_project_iam_member.plane),
        keys(google_service_account_iam_member.plane),
        keys(google_storage_bucket_iam_member.plane),
        keys(google_pubsub_topic_iam_member.plane),
        keys(google_artifact_registry_repository_iam_member.plane),
        [for binding in keys(google_compute_subnetwork_iam_member.plane) : split(" ", binding)[0]],
        [for binding in keys(google_cloud_run_v2_service_iam_member.plane) : split(" ", binding)[0]],
        [for binding in keys(google_pubsub_subscription_iam_member.plane) : split(" ", binding)[0]],
        # Without buckets of panels and without secrets, these three are not bound.
        [for name in keys(google_project_iam_custom_role.plane) : name if endswith(name, "_input_buckets") || endswith(name, "_secrets")],
      ))
    )
    error_message = "Every role is bound somewhere."
  }

  assert {
    condition = alltrue([
      for name, role in google_project_iam_custom_role.plane :
      strcontains(google_project_iam_member.plane[name].condition[0].expression, ".startsWith('sf-')")
      if contains(role.permissions, "compute.instances.delete") || contains(role.permissions, "compute.disks.delete")
    ])
    error_message = "Nothing is deleted that is not called `sf-...`."
  }

  assert {
    condition = alltrue([
      for name, role in google_project_iam_custom_role.plane :
      contains(["only configs", "only marker copies"], google_storage_bucket_iam_member.plane[name].condition[0].title)
      if contains(role.permissions, "storage.objects.delete")
    ])
    error_message = "Nobody may delete or replace a marker."
  }

  assert {
    condition     = alltrue([for name, role in google_project_iam_custom_role.plane : contains(keys(google_service_account_iam_member.plane), name) if contains(role.permissions, "iam.serviceAccounts.actAs")])
    error_message = "actAs is granted on accounts only."
  }

  # The state is indexed for the queries only.

  assert {
    condition     = alltrue([for field in google_firestore_field.unindexed : field.field == "*" && length(field.index_config[0].indexes) == 0])
    error_message = "Nothing is indexed by default."
  }

  assert {
    condition     = one(google_firestore_field.indexed["jobs/wake_at"].index_config[0].indexes).order == "ASCENDING"
    error_message = "The due query needs its index."
  }

  assert {
    condition     = alltrue([for field in google_firestore_field.expiry : length(field.ttl_config) == 1 && length(field.index_config[0].indexes) == 0])
    error_message = "What expires is removed by the database, and its moment not indexed."
  }

  assert {
    condition     = google_firestore_database.state.delete_protection_state == "DELETE_PROTECTION_ENABLED"
    error_message = "The state is not deleted by accident."
  }
}

run "a_plane_with_every_wish" {
  command = plan

  variables {
    cells_prefix      = "gs://warehouse/forecasts/artifacts"
    guest_self_delete = false
    input_buckets     = ["panels"]
    kms_key           = "projects/plane-tests/locations/us-central1/keyRings/ring/cryptoKeys/key"
    secrets           = ["projects/plane-tests/secrets/token"]
    vpc_egress        = { network = "projects/plane-tests/global/networks/n", subnetwork = "projects/plane-tests/regions/us-central1/subnetworks/s" }
  }

  assert {
    condition     = !contains(keys(google_project_iam_custom_role.plane), "worker_machines") && local.settings.SF_GUEST_SELF_DELETE == "false"
    error_message = "Then the worker has no right to delete machines."
  }

  assert {
    condition = alltrue(concat(
      [for topic in google_pubsub_topic.plane : topic.kms_key_name == var.kms_key],
      [for function in google_cloudfunctions2_function.plane : function.kms_key_name == var.kms_key],
      [for bucket in [google_storage_bucket.code, google_storage_bucket.status] : bucket.encryption[0].default_kms_key_name == var.kms_key],
      [google_firestore_database.state.cmek_config[0].kms_key_name == var.kms_key],
      [google_artifact_registry_repository.functions.kms_key_name == var.kms_key],
    ))
    error_message = "Something is encrypted by Google's own key."
  }

  assert {
    condition     = contains(keys(google_kms_crypto_key_iam_member.disks), "compute_agent_disk_key")
    error_message = "Compute Engine has to use the key for the workers' disks."
  }

  assert {
    condition = (
      google_storage_bucket_iam_member.plane["worker_results"].bucket == "warehouse"
      && google_storage_bucket_iam_member.plane["worker_results"].condition[0].expression == "resource.name.startsWith('projects/_/buckets/warehouse/objects/forecasts/artifacts/')"
    )
    error_message = "The worker writes below the prefix only."
  }

  assert {
    condition     = contains(keys(google_storage_bucket_iam_member.inputs), "worker_input_buckets panels") && contains(keys(google_secret_manager_secret_iam_member.plane), "worker_secrets projects/plane-tests/secrets/token")
    error_message = "The worker reads panels and secrets."
  }

  assert {
    condition     = alltrue([for function in google_cloudfunctions2_function.plane : function.service_config[0].direct_vpc_egress == "VPC_EGRESS_ALL_TRAFFIC" && length(function.service_config[0].direct_vpc_network_interface) == 1])
    error_message = "All traffic goes through the subnet."
  }
}

run "wishes_that_cannot_be_met" {
  command = plan

  variables {
    bundle       = "./no-such.zip"
    cells_prefix = "warehouse/artifacts/"
    kms_key      = "key"
    plane_id     = "Main"
    retention    = { markers_days = 30 }
    settings     = { SF_PROJECT_ID = "other" }
    worker       = { repository = "r", service_account_email = "e", subnetworks = {} }
  }

  expect_failures = [var.bundle, var.cells_prefix, var.kms_key, var.plane_id, var.retention, var.settings, var.worker]
}
