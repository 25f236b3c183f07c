output "network" {
  description = "Full name of the workers' network."
  value       = google_compute_network.workers.id
}

output "registry" {
  description = "Address that images are pushed to and pulled from: `HOST/PROJECT/REPOSITORY`."
  value       = "${var.region}-docker.pkg.dev/${var.project_id}/${google_artifact_registry_repository.images.repository_id}"
}

output "repository" {
  description = "Full name of the repository of images."
  value       = google_artifact_registry_repository.images.id
}

output "service_account_email" {
  description = "E-mail of the account that workers run as."
  value       = google_service_account.worker.email
}

output "subnetworks" {
  description = "Full names of the subnets by region."
  value       = { for region, subnet in google_compute_subnetwork.workers : region => subnet.id }
}
