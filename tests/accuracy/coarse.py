"""The coarse question that every profiler answers: is it the loader, and which resource is short.

Every label of the diagnosis belongs to one of a few resources, so that tools with two or three
verdicts can be scored on the same runs as one with fifty.
"""

from __future__ import annotations

CONSUMER, CPU, IO, OTHER = "consumer", "cpu", "io", "other"

# label -> resource. What is neither a core nor a device (hand-over, start-up, locks, memory) is
# "other": none of the tools compared with has a word for it.
_BY_RESOURCE = {
    CONSUMER: "not_loader_bound checkpoint_stall step_overhead gc_pauses",
    CPU: (
        "hf_map_not_batched hf_map_cache_miss no_workers_cpu_bound too_many_workers "
        "thread_oversubscription duplicated_across_workers native_threads_off per_sample_fetch "
        "slow_collate hf_indices_mapping hf_nested_list_features hf_column_access "
        "hf_unused_decoded_column hf_python_object_rows repeated_deterministic_transform "
        "pandas_row_access oversized_decode decode_cpu text_parse_per_item gil_bound_threads "
        "reopen_per_item read_amplification cpu_quota affinity cores_taken"
    ),
    IO: (
        "no_workers_latency_bound many_small_files disk_bandwidth disk_latency page_fault_io "
        "network_latency noisy_neighbour"
    ),
    OTHER: (
        "first_batch_setup shuffle_buffer_fill spawn_pickles_dataset hf_map_numproc_overhead "
        "workers_overhead worker_restart_per_epoch fork_deadlock shards_fewer_than_workers "
        "uneven_shards head_of_line_blocking fd_shared_after_fork not_importable_in_worker "
        "lock_contention ipc_many_tensors ipc_python_objects bytes_inflated pin_memory_misuse "
        "dataset_in_memory prefetch_memory cow_python_objects shm_limit"
    ),
}

RESOURCE_OF = {label: kind for kind, labels in _BY_RESOURCE.items() for label in labels.split()}


def resource_of(label: str) -> str:
    """The resource a label is about; a label nobody listed is "other"."""
    return RESOURCE_OF.get(label, OTHER)


def is_loader(label: str) -> bool:
    """Whether a label says that the loader, not the consumer's own work, holds the loop back."""
    return resource_of(label) != CONSUMER
