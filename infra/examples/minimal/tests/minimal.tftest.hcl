mock_provider "google" {}

variables {
  project_id = "plane-tests"
  bundle     = "./main.tf"
}

run "ten_lines_make_a_plane" {
  command = plan

  assert {
    condition     = output.registry == "us-central1-docker.pkg.dev/plane-tests/sf-workers" && output.settings.SF_PROJECT_ID == "plane-tests"
    error_message = "The outputs say where images go, and how to talk to the plane."
  }
}
