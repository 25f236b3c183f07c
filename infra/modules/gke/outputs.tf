output "cluster" {
  description = "Name of the cluster."
  value       = google_container_cluster.standing.name
}

output "rbac_manifest" {
  description = "Kubernetes objects that let the functions work in the namespace, and pods be the worker: `terraform output -raw ... | kubectl apply -f -`."
  value = templatefile("${path.module}/rbac.yaml.tftpl", {
    accounts           = var.function_accounts
    kubernetes_account = local.kubernetes_account
    namespace          = var.namespace
    worker             = var.worker.service_account_email
  })
}

output "settings" {
  description = "Settings by which the plane uses the cluster: for the control plane's variable `settings`."
  value = {
    SF_GKE_CLUSTER         = google_container_cluster.standing.name
    SF_GKE_SERVICE_ACCOUNT = local.kubernetes_account
  }
}
