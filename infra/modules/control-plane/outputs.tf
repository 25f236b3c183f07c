output "alerts" {
  description = "Names of the alert policies by what they watch."
  value       = { for name, policy in google_monitoring_alert_policy.plane : name => policy.name }
}

output "buckets" {
  description = "Names of the code and the status bucket."
  value = {
    code   = google_storage_bucket.code.name
    status = google_storage_bucket.status.name
  }
}

output "function_accounts" {
  description = "E-mail of each function's service account, e.g. for rights on a standing cluster."
  value       = { for name, account in google_service_account.function : name => account.email }
}

output "settings" {
  description = "The plane's settings as the functions have them: what the command line needs to talk to this plane."
  value       = local.settings
}

output "topics" {
  description = "Names of the topics."
  value       = { for name, topic in google_pubsub_topic.plane : name => topic.name }
}
