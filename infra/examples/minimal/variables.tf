variable "bundle" {
  description = "Path of the functions' zip, as `make bundle` wrote it."
  type        = string
}

variable "project_id" {
  description = "The Google Cloud project."
  type        = string
}

variable "region" {
  description = "Region of everything."
  type        = string
  default     = "us-central1"
}
