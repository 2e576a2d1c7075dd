package CdcBridge::Mutations;

# The table of mutations, test/mutations.txt: rules of the code, each broken on purpose, and the test that must fail then.
#
#   my @mutations = CdcBridge::Mutations::read_table($tree);       # { name, rule, tests => [[source, pg, number]], edits => [[file, old, new]] }
#   my $problem = CdcBridge::Mutations::apply($tree, $mutation);   # change the files; or what is wrong with it
#   CdcBridge::Mutations::problem($tree, $mutation);               # the same without changing anything; '' when all is well

use strict;
use warnings;

sub _slurp
{
	my ($file) = @_;
	open(my $in, '<:raw', $file) or die "$file: $!\n";
	local $/;
	return scalar <$in>;
}

sub read_table
{
	my ($tree) = @_;
	my $path = "$tree/test/mutations.txt";
	my (@mutations, $now, $line);
	for my $text (split(/\n/, _slurp($path)))
	{
		$line++;
		next if $text =~ /^(#|\s*$)/;
		if ($text =~ /^mutation\s+([a-z0-9-]+)$/) { push @mutations, $now = { name => $1, line => $line, tests => [], edits => [] }; next; }
		die "$path:$line: it does not begin with a mutation\n" unless $now;
		if ($text =~ /^rule\s+(.+)$/) { $now->{rule} = $1; }
		elsif ($text =~ /^test\s+(unit|((mariadb|mariadb118|mysql)-|pg)(\d+) (\d{3}))$/) { push @{ $now->{tests} }, $1; }
		elsif ($text =~ m{^file\s+(\S+)$}) { push @{ $now->{edits} }, { file => $1, old => '', new => '' }; }
		elsif ($text =~ /^-(.*)$/ && @{ $now->{edits} })
		{
			# old text after new text: another place of the same file
			push @{ $now->{edits} }, { file => $now->{edits}[-1]{file}, old => '', new => '' } if $now->{edits}[-1]{new} ne '';
			$now->{edits}[-1]{old} .= "$1\n";
		}
		elsif ($text =~ /^\+(.*)$/ && @{ $now->{edits} }) { $now->{edits}[-1]{new} .= "$1\n"; }
		else { die "$path:$line: not understood: $text\n"; }
	}
	return @mutations;
}

# The files of a mutation with its changes: (problem, { file => text }).
sub _changed
{
	my ($tree, $mutation) = @_;
	my %text;
	return ('it names no rule') unless $mutation->{rule};
	return ('it names no test') unless @{ $mutation->{tests} };
	return ('it changes nothing') unless @{ $mutation->{edits} };
	for my $edit (@{ $mutation->{edits} })
	{
		my ($file, $old, $new) = @$edit{qw(file old new)};
		return ("$file is not there") unless -f "$tree/$file";
		return ("$file: nothing is to be replaced") if $old eq '' || $old eq $new;
		$text{$file} //= _slurp("$tree/$file");
		my $found = () = $text{$file} =~ /^\Q$old\E/mg;
		return ("$file: this stands there $found times, not once:\n$old") if $found != 1;
		$text{$file} =~ s/^\Q$old\E/$new/m;
	}
	for my $test (@{ $mutation->{tests} })
	{
		my ($number) = $test =~ / (\d{3})$/ or next;
		my @files = glob("$tree/test/t/${number}_*.pl");
		return ("there is no test $number") unless @files;
	}
	return ('', \%text);
}

sub problem { my ($tree, $mutation) = @_; return (_changed($tree, $mutation))[0]; }

sub apply
{
	my ($tree, $mutation) = @_;
	my ($problem, $text) = _changed($tree, $mutation);
	return $problem if $problem;
	for my $file (keys %$text)
	{
		open(my $out, '>:raw', "$tree/$file") or die "$file: $!\n";
		print $out $text->{$file};
		close($out) or die "$file: $!\n";
	}
	return '';
}

1;
