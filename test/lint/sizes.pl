# Files over 1,200 and functions over 150 lines are reported, for a reader to ask where they would be cut; they are no error.

use strict;
use warnings;

use Test::More;

my (@long, $files, $functions);
for my $file (sort map { glob("src/$_") } ('*/*.[ch]', '*/*/*.[ch]'))
{
	open(my $in, '<', $file) or die "$file: $!";
	my ($lines, $start, $name) = (0);
	my $previous = '';
	$files++;
	while (<$in>)
	{
		$lines++;
		if (/^\{/) { ($start, $name) = ($lines, $previous); }
		elsif (/^\}/ && $start)
		{
			$functions++;
			my $length = $lines - $start + 1;
			push @long, "$file:$start: $length lines: $name" if $length > 150 && $name =~ /\)/;
			undef $start;
		}
		chomp;
		$previous = $_ if /\S/;
	}
	push @long, "$file: $lines lines" if $lines > 1200;
}
diag("long: $_") for @long;
pass(sprintf('%d files, %d blocks, %d of them long', $files // 0, $functions // 0, scalar @long));

done_testing();
