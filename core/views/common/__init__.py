"""What all views share: colours, figures, markup."""
