"""What is known of data and numbers that people meet."""
