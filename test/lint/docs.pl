# What docs/troubleshooting.md and docs/export.md say a user sees is what the code says: each quoted message stands in src/.

use strict;
use warnings;

use Test::More;

my $source = '';
for my $file (glob('src/*/*.c'))
{
	open(my $in, '<', $file) or die "$file: $!";
	local $/;
	$source .= <$in>;
}
$source =~ s/"\s*\n\s*"//g;    # strings that go on in the next line

my ($column, %checked) = (undef);
local @ARGV = qw(docs/troubleshooting.md docs/export.md);
while (my $line = <<>>)
{
	if ($line !~ /^\|/) { $column = undef; next; }
	my @cells = map { s/^\s+|\s+$//gr } split(/\|/, $line);
	for my $i (0 .. $#cells) { $column = $i if $cells[$i] eq 'what you see'; }
	next unless defined $column && defined $cells[$column];
	for my $message ($cells[$column] =~ /`([^`]+)`/g)
	{
		my @missing = grep { length($_) > 7 && index($source, $_) < 0 } map { s/^[\s"]+|[\s"]+$//gr } split(/\.\.\./, $message);
		ok(!@missing, "$ARGV: $message") or diag("not in src/: @missing");
		$checked{$ARGV}++;
	}
}
cmp_ok($checked{$_} // 0, '>', 5, "messages of $_ were found to check") for qw(docs/troubleshooting.md docs/export.md);

done_testing();
