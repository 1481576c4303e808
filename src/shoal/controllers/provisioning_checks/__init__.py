"""Makes the ProvisioningRequests of Kueue's provisioning checks, and reports their results to the Workloads."""
