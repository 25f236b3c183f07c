locals {
  kubernetes_account = "runtender-worker"
}

# Workload Identity: a pod that runs as the Kubernetes account is the worker's account towards Google.
resource "google_service_account_iam_member" "pods" {
  service_account_id = "projects/${var.project_id}/serviceAccounts/${var.worker.service_account_email}"
  role               = "roles/iam.workloadIdentityUser"
  member             = "serviceAccount:${var.project_id}.svc.id.goog[${var.namespace}/${local.kubernetes_account}]"

  # The pool of identities comes into being with the project's first cluster.
  depends_on = [google_container_cluster.standing]
}
