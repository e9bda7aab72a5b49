"""The stand-ins for Triton-distributed, NVSHMEM and CUDA; what programs import is in face, nvshmem and cuda."""
