variable "kms_key" {
  description = "Full name of a Cloud KMS key in `region` that encrypts the images. Null: Google's own key."
  type        = string
  default     = null
}

variable "labels" {
  description = "Labels on everything that takes labels."
  type        = map(string)
  default     = {}
}

variable "nat" {
  description = "Let workers reach the internet, without being reachable themselves. Google's APIs and the images in Artifact Registry need none."
  type        = bool
  default     = false
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
  description = "Home region: the images lie there."
  type        = string
}

variable "subnets" {
  description = "Regions where workers may run, each with the addresses of its subnet. The home region must be one. Empty: 10.64.0.0/20 in the home region. A walk for capacity goes to no region without a subnet."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for range in values(var.subnets) : can(cidrhost(range, 1))])
    error_message = "Write each as a range, e.g. 10.64.0.0/20."
  }
}
