# What the functions log, counted. The words are those of the code: a test looks for each message there.
locals {
  our_logs = join(" ", [
    "resource.type=\"cloud_run_revision\"",
    "resource.labels.service_name=(${join(" OR ", [for name in keys(local.functions) : "\"${local.prefix}-on-${name}\""])})",
  ])

  log_metrics = {
    ticks = {
      description = "Ticks that were carried out to their end."
      messages    = ["tick"]
    }
    creates = {
      description = "Creates sent to Compute Engine or Kubernetes."
      messages    = ["create answered"]
    }
    orphans = {
      description = "Machines of this plane that no job lists: deleted, or left alone because there is no job document."
      messages    = ["orphan deleted", "a worker without a job document; it is left alone"]
    }
    stuck = {
      description = "Deletes refused, the third one in a row and those after it."
      messages    = ["cleanup stuck"]
    }
    returned = {
      description = "Events sent back because something could not be reached just then."
      messages    = ["comes again"]
    }
    rejected = {
      description = "Submit messages rejected for what is in them."
      messages    = ["submit rejected"]
    }
    unknown_codes = {
      description = "Refusals by Google with a code that the plane does not know."
      messages    = ["unknown code"]
    }
  }

  audit_logs = "logName=\"projects/${var.project_id}/logs/cloudaudit.googleapis.com%2Factivity\""

  counts = merge(
    {
      for name, metric in local.log_metrics : name => {
        description = metric.description
        filter      = "${local.our_logs} jsonPayload.message=(${join(" OR ", [for message in metric.messages : "\"${message}\""])})"
      }
    },
    {
      faults = {
        description = "What the functions log as an error: bugs, and steps that failed."
        filter      = "${local.our_logs} severity>=ERROR"
      }
      # Admin Activity logs are always on, and tell of this whether or not the functions are alive.
      refused_deletes = {
        description = "Deletes of machines by the functions that Compute Engine refused, other than for what is gone already (code 5)."
        filter = join(" ", [
          local.audit_logs,
          "resource.type=\"gce_instance\"",
          "protoPayload.methodName=~\"compute[.]instances[.]delete$\"",
          "protoPayload.authenticationInfo.principalEmail=(${join(" OR ", [for account in google_service_account.function : "\"${account.email}\""])})",
          "severity>=ERROR",
          "NOT protoPayload.status.code=5",
        ])
      }
    },
  )
  # Both ends of the life of a cluster that a job has for itself: it has no fence of its own.
  cluster_counts = {
    clusters_created = "protoPayload.methodName=~\"ClusterManager[.]CreateCluster$\" operation.first=true"
    clusters_deleted = "protoPayload.methodName=~\"ClusterManager[.]DeleteCluster$\" operation.last=true"
  }

  # Name of a metric in PromQL: letters, digits and `_` only.
  promql = {
    for name in concat(keys(local.counts), keys(local.cluster_counts)) :
    name => "logging_googleapis_com:user_${replace("${local.prefix}/${name}", "/[^a-zA-Z0-9]/", "_")}"
  }
}

resource "google_logging_metric" "counts" {
  for_each = local.counts

  project     = var.project_id
  name        = "${local.prefix}/${each.key}"
  description = each.value.description
  filter      = each.value.filter

  metric_descriptor {
    metric_kind = "DELTA"
    value_type  = "INT64"
  }

  depends_on = [google_project_service.needed]
}

resource "google_logging_metric" "clusters" {
  for_each = local.cluster_counts

  project     = var.project_id
  name        = "${local.prefix}/${each.key}"
  description = "Clusters that jobs have for themselves (their names begin with `sf-`)."
  filter      = "${local.audit_logs} resource.type=\"gke_cluster\" resource.labels.cluster_name=~\"^sf-\" ${each.value} severity<ERROR"

  label_extractors = {
    cluster  = "EXTRACT(resource.labels.cluster_name)"
    location = "EXTRACT(resource.labels.location)"
  }

  metric_descriptor {
    metric_kind = "DELTA"
    value_type  = "INT64"

    labels {
      key        = "cluster"
      value_type = "STRING"
    }

    labels {
      key        = "location"
      value_type = "STRING"
    }
  }

  depends_on = [google_project_service.needed]
}
