output "registry" {
  description = "Where to push the workers' image."
  value       = module.worker.registry
}

output "settings" {
  description = "What the command line needs to talk to this plane."
  value       = module.control_plane.settings
}
