"""Read models for people: charts, tables and terminal pictures made from plain values."""
