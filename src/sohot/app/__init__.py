"""`sohot app`: a page on this machine alone, to label images, correct labels, train again and compare runs."""
