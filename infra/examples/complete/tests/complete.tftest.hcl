mock_provider "google" {}

variables {
  project_id    = "plane-tests"
  bundle        = "./main.tf"
  image         = "forecast@sha256:0000000000000000000000000000000000000000000000000000000000000000"
  kms_key       = "projects/plane-tests/locations/us-central1/keyRings/ring/cryptoKeys/key"
  alert_emails  = ["oncall@example.com"]
  budget        = { amount = 500, billing_account = "000000-000000-000000" }
  input_buckets = ["panels"]
  labels        = { team = "demand" }
}

run "everything_at_once" {
  command = plan

  assert {
    condition     = output.settings.SF_GKE_CLUSTER == "runtender-main" && output.settings.SF_API_BUDGET == "500"
    error_message = "The plane knows the standing cluster, and its own settings."
  }

  assert {
    condition     = startswith(output.settings.SF_CONTAINER_IMAGE, "us-central1-docker.pkg.dev/plane-tests/sf-workers/forecast@sha256:")
    error_message = "Runs use the image by its digest."
  }
}
