variable "alert_emails" {
  description = "Addresses that hear of alerts."
  type        = list(string)
}

variable "budget" {
  description = "What the project may cost in a month before somebody is warned."
  type = object({
    amount          = number
    billing_account = string
  })
}

variable "bundle" {
  description = "Path of the functions' zip, as `make bundle` wrote it."
  type        = string
}

variable "image" {
  description = "The workers' image in the worker module's repository, by digest: `NAME@sha256:...`."
  type        = string
}

variable "input_buckets" {
  description = "Names of the buckets with panels."
  type        = set(string)
  default     = []
}

variable "kms_key" {
  description = "Full name of the Cloud KMS key that encrypts everything."
  type        = string
}

variable "labels" {
  description = "Labels on everything that takes labels."
  type        = map(string)
  default     = {}
}

variable "notification_channels" {
  description = "Full names of further notification channels."
  type        = list(string)
  default     = []
}

variable "project_id" {
  description = "The Google Cloud project."
  type        = string
}

variable "region" {
  description = "Home region."
  type        = string
  default     = "us-central1"
}

variable "secrets" {
  description = "Full names of the secrets that workers may read."
  type        = set(string)
  default     = []
}
