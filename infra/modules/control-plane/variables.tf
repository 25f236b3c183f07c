variable "alert_emails" {
  description = "Addresses that hear of alerts. Each has to confirm by the mail that Cloud Monitoring sends."
  type        = list(string)
  default     = []
}

variable "alerts" {
  description = "Bounds of the alerts: how old a job's own cluster may get, and how long the oldest message may wait."
  type = object({
    cluster_age_hours      = optional(number, 26)
    oldest_message_minutes = optional(number, 15)
  })
  default = {}

  validation {
    condition     = var.alerts.cluster_age_hours >= 1 && var.alerts.oldest_message_minutes >= 1
    error_message = "Each bound is at least 1."
  }
}

variable "budget" {
  description = "Warn when the project's month comes near to `amount` (whole units of the billing account's currency). Null: no budget. It warns, it stops nothing."
  type = object({
    amount          = number
    billing_account = string
  })
  default = null
}

variable "bundle" {
  description = "Path of the functions' zip, as `make bundle` wrote it. Another content is another deployment; the former zip rolls back."
  type        = string

  validation {
    condition     = fileexists(var.bundle)
    error_message = "There is no such file: run `make bundle` and name what it wrote."
  }
}

variable "cells_prefix" {
  description = "Where results go, `gs://bucket/folder` without a slash at its end (SF_CELLS_PREFIX). The bucket exists already. Null: the folder `artifacts` of the code bucket."
  type        = string
  default     = null

  validation {
    condition     = var.cells_prefix == null || can(regex("^gs://[a-z0-9][a-z0-9._-]*/.*[^/]$", var.cells_prefix))
    error_message = "Write gs://bucket/folder, without a slash at its end."
  }
}

variable "deletion_protection" {
  description = "Keep the database and the buckets from being destroyed with the rest. Set it to false, apply, and only then destroy."
  type        = bool
  default     = true
}

variable "guest_self_delete" {
  description = "A worker's VM removes itself when its end is stored (SF_GUEST_SELF_DELETE). For that its account may delete every VM of the project whose name begins with `sf-`: a condition cannot say `itself`. False: it powers off, and the plane deletes it up to a minute later."
  type        = bool
  default     = true
}

variable "image" {
  description = "The worker's image for runs that name none (SF_CONTAINER_IMAGE), best by digest: `HOST/PROJECT/REPOSITORY/NAME@sha256:...`. Empty: each run has to name one."
  type        = string
  default     = ""
}

variable "input_buckets" {
  description = "Names of the buckets with panels, other than the code bucket, which the functions and the worker are to read."
  type        = set(string)
  default     = []
}

variable "kms_key" {
  description = "Full name of a Cloud KMS key of this project in `region` that encrypts buckets, topics, database, the functions and their images, and the workers' disks. A disk takes a key of its own region only, so workers then stay in the home region. Null: Google's own keys."
  type        = string
  default     = null

  validation {
    condition     = var.kms_key == null || can(regex("^projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+$", var.kms_key))
    error_message = "Write projects/PROJECT/locations/LOCATION/keyRings/RING/cryptoKeys/KEY."
  }
}

variable "labels" {
  description = "Labels on everything that takes labels."
  type        = map(string)
  default     = {}
}

variable "notification_channels" {
  description = "Full names of further notification channels of Cloud Monitoring that alerts go to."
  type        = list(string)
  default     = []
}

variable "plane_id" {
  description = "Name of the plane (SF_PLANE_ID): the label by which it knows its machines. The state lies in the project's default database, so there is one plane per project."
  type        = string
  default     = "main"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,17}$", var.plane_id))
    error_message = "At most 18 of a-z, 0-9 and -, a letter first."
  }
}

variable "point_in_time_recovery" {
  description = "Keep a week of the database's past, so that it can be read as it was. Costs storage."
  type        = bool
  default     = false
}

variable "project_id" {
  description = "The Google Cloud project."
  type        = string
}

variable "region" {
  description = "Region of the functions, the database, the buckets and the timer, and the home region of workers (SF_REGION)."
  type        = string
}

variable "retention" {
  description = "Days to keep things in the buckets. `code_days` null: staged code and configs are never deleted (a nightly run may still name them); after 90 days they move to cheaper storage."
  type = object({
    code_days    = optional(number)
    logs_days    = optional(number, 90)
    markers_days = optional(number, 400)
  })
  default = {}

  validation {
    condition     = var.retention.markers_days >= 130
    error_message = "A run may last 120 days, and its markers decide how it ended: keep them for at least 130."
  }
}

variable "runtime" {
  description = "Python of the functions. The lock was tested with this one."
  type        = string
  default     = "python311"

  validation {
    condition     = contains(["python311", "python312", "python313"], var.runtime)
    error_message = "Use python311, python312 or python313."
  }
}

variable "scaling" {
  description = "Size of each function. `concurrency` is events at once per instance, `min_instances` above 0 pays for warmth."
  type = object({
    submit = optional(object({
      concurrency   = optional(number, 8)
      max_instances = optional(number, 20)
      memory        = optional(string, "512Mi")
      min_instances = optional(number, 0)
    }), {})
    marker = optional(object({
      concurrency   = optional(number, 8)
      max_instances = optional(number, 20)
      memory        = optional(string, "512Mi")
      min_instances = optional(number, 0)
    }), {})
    tick = optional(object({
      concurrency   = optional(number, 1)
      max_instances = optional(number, 3)
      memory        = optional(string, "512Mi")
      min_instances = optional(number, 0)
    }), {})
  })
  default = {}
}

variable "secrets" {
  description = "Full names of the secrets of Secret Manager that workers may read: `projects/PROJECT/secrets/NAME`."
  type        = set(string)
  default     = []
}

variable "settings" {
  description = "Further settings of the plane (SF_* variables); see `shared/runtender/settings.py`. Those that follow from this module's own variables cannot be given here."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for name in keys(var.settings) : can(regex("^SF_[A-Z_]+$", name))])
    error_message = "A setting's name begins with SF_."
  }

  validation {
    condition = length(setintersection(keys(var.settings), [
      "SF_BACKEND", "SF_CELLS_PREFIX", "SF_CODE_BUCKET", "SF_COMPUTE_FALLBACK", "SF_COMPUTE_SA", "SF_CONTAINER_IMAGE",
      "SF_DEAD_LETTER_TOPIC", "SF_GUEST_SELF_DELETE", "SF_KMS_KEY", "SF_MARKER_TOPIC", "SF_NOTIFY_TOPIC", "SF_PLANE_ID", "SF_PROJECT_ID", "SF_REGION",
      "SF_STATUS_BUCKET", "SF_SUBMIT_TOPIC", "SF_SUBNETWORK_URI", "SF_TICK_TOPIC",
    ])) == 0
    error_message = "This module sets some of these itself; use its variables."
  }
}

variable "ticks_paused" {
  description = "Stop the timer. Runs still begin and end by their events, but nothing watches over them."
  type        = bool
  default     = false
}

variable "vpc_egress" {
  description = "Send all that the functions send through this subnet, e.g. because of a service perimeter. Null: straight to Google's APIs."
  type = object({
    network    = string
    subnetwork = string
  })
  default = null
}

variable "worker" {
  description = "What workers run as, in and from: the outputs of the module `worker`, or the like. `subnetworks` maps regions to the full names of subnets."
  type = object({
    repository            = string
    service_account_email = string
    subnetworks           = map(string)
  })

  validation {
    condition     = contains(keys(var.worker.subnetworks), var.region)
    error_message = "The workers need a subnet in the home region."
  }
}
