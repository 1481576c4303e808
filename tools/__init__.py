"""Programs for those who develop Shoal: generators of tables, comparisons with other servers."""
