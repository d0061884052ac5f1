-- Labels are looked up by record_labels here, which is in the order of time already.

SELECT 1;
