variable "deletion_protection" {
  description = "Keep the cluster from being destroyed with the rest."
  type        = bool
  default     = true
}

variable "function_accounts" {
  description = "E-mails of the functions' service accounts: the control plane's output `function_accounts`."
  type = object({
    marker = string
    submit = string
    tick   = string
  })
}

variable "kms_key" {
  description = "Full name of a Cloud KMS key in `region` that encrypts the cluster's secrets. Null: Google's own key."
  type        = string
  default     = null
}

variable "labels" {
  description = "Labels on the cluster, and by it on its nodes."
  type        = map(string)
  default     = {}

  validation {
    condition     = !contains(keys(var.labels), "sf-kind")
    error_message = "GKE hands labels on to nodes; with `sf-kind` the plane would take them for its machines."
  }
}

variable "namespace" {
  description = "Namespace of the workers' pods. `compute.gke_namespace` in a run's config says the same; it is `default` where the config does not say."
  type        = string
  default     = "default"
}

variable "network" {
  description = "Full name of the network: the worker module's output `network`."
  type        = string
}

variable "plane_id" {
  description = "Name of the plane, as for the control plane."
  type        = string
  default     = "main"
}

variable "project_id" {
  description = "The Google Cloud project."
  type        = string
}

variable "region" {
  description = "The cluster's region."
  type        = string
}

variable "subnetwork" {
  description = "Full name of the subnet in that region: one of the worker module's output `subnetworks`."
  type        = string
}

variable "worker" {
  description = "What pods run as and from: the outputs of the module `worker`, or the like."
  type = object({
    repository            = string
    service_account_email = string
  })
}
