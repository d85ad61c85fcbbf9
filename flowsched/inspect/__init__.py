"""Looking into plans and graphs: text, numbers, explanations, diagrams, notebook tables."""
